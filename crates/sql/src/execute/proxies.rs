//! GRANT PROXY and REVOKE PROXY: whose logins act as another account (`Instance::proxied_account`).

use highkey_table::{AccountName, Grants, Privileges};
use highkey_types::{MySqlError, errors};

use super::users::quoted_account;
use super::{Failure, Outcome};
use crate::parse::ast::{Grant, UserName};
use crate::session::Session;

impl Session {
    /// Nobody asks whether the account is there that is to be acted as.
    pub(super) async fn grant_proxy(&mut self, grant: &Grant, proxied: &UserName, granting: bool) -> Result<Outcome, Failure> {
        let (user, host) = self.account_name(proxied);
        let proxied = AccountName { user, host };
        self.check_proxy_grantor(&proxied)?;
        let accounts: Vec<(String, String)> = grant.users.iter().map(|name| self.account_name(name)).collect();
        for (user, host) in &accounts {
            match self.find_account(user, host) {
                None if granting => return Err(errors::cant_create_user_with_grant().into()),
                Some(account) if granting || account.grants.proxied.contains(&proxied) => {}
                // A replica may do again what a crash has left half done.
                Some(_) if self.replica.is_some() => {}
                _ => return Err(errors::nonexisting_grant(user, host).into()),
            }
        }
        let of = quoted_account(&proxied.user, &proxied.host);
        for (user, host) in accounts {
            let to = quoted_account(&user, &host);
            let text = match (granting, grant.grant_option) {
                (true, true) => format!("GRANT PROXY ON {of} TO {to} WITH GRANT OPTION"),
                (true, false) => format!("GRANT PROXY ON {of} TO {to}"),
                (false, _) => format!("REVOKE PROXY ON {of} FROM {to}"),
            };
            let cx = self.account_context(text);
            let change = |grants: &mut Grants| {
                if granting {
                    grants.proxied.insert(proxied.clone());
                } else {
                    grants.proxied.remove(&proxied);
                }
                // The latest one says it all.
                if granting && grant.grant_option {
                    grants.proxied_grantable.insert(proxied.clone());
                } else {
                    grants.proxied_grantable.remove(&proxied);
                }
                Ok(())
            };
            self.state.instance.database().clone().change_grants(&cx, &user, &host, change).await?;
        }
        Ok(Outcome::ok())
    }

    /// Who may say who acts as an account: itself, who has it WITH GRANT OPTION, for itself or for all accounts (`''@''`), and who has SUPER and GRANT
    /// OPTION ON *.*. Error 1698.
    fn check_proxy_grantor(&self, proxied: &AccountName) -> Result<(), MySqlError> {
        let client = &self.state.client;
        let own = client.account_user == proxied.user && client.account_host.eq_ignore_ascii_case(&proxied.host);
        let administers = self.state.access().is_none_or(|access| access.global().has(Privileges::SUPER.and(Privileges::GRANT)));
        if own || administers {
            return Ok(());
        }
        let everybody = AccountName { user: String::new(), host: String::new() };
        let grantable = |account: &AccountName| self.find_account(&client.account_user, &client.account_host).is_some_and(|holder| holder.grants.proxied_grantable.contains(account));
        if grantable(proxied) || grantable(&everybody) {
            return Ok(());
        }
        Err(errors::access_denied_no_password_error(&client.user, &client.client_host))
    }
}
