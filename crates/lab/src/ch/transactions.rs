//! TPC-C's five transactions, by prepared statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, Params};
use rand::Rng;
use rand::rngs::StdRng;

use super::tables::{CUSTOMERS, DISTRICTS, ITEMS, last_name, non_uniform};
use crate::server::Result;
use crate::workers::Work;

/// What a terminal does: in TPC-C's proportions, without waiting. New orders count.
#[derive(Clone)]
pub struct Terminal {
    pub warehouses: u32,
    /// Transactions that began again because of a deadlock or a lock that was waited for too long.
    pub retries: Arc<AtomicU64>,
}

/// The client rolled the transaction back as it was meant to, or it committed.
type Done = std::result::Result<(), Error>;

impl Work for Terminal {
    async fn piece(&self, connection: &mut Conn, number: u64, random: &mut StdRng) -> Result<bool> {
        let kind = random.random_range(0..100);
        // Each terminal has its warehouse.
        let w = (number % u64::from(self.warehouses)) as u32 + 1;
        loop {
            let mut one = Transaction { connection, random, w, warehouses: self.warehouses };
            let (name, done) = match kind {
                0..45 => ("new order", one.new_order().await),
                45..88 => ("payment", one.payment().await),
                88..92 => ("order status", one.order_status().await),
                92..96 => ("delivery", one.delivery().await),
                _ => ("stock level", one.stock_level().await),
            };
            match done {
                Ok(()) => return Ok(kind < 45),
                // Deadlock, lock wait timeout.
                Err(Error::Server(e)) if [1213, 1205].contains(&e.code) => {
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    connection.query_drop("ROLLBACK").await?;
                }
                Err(e) => return Err(format!("{name}: {e}").into()),
            }
        }
    }
}

struct Transaction<'a> {
    connection: &'a mut Conn,
    random: &'a mut StdRng,
    w: u32,
    warehouses: u32,
}

impl Transaction<'_> {
    async fn run(&mut self, sql: &'static str, params: impl Into<Params> + Send) -> Done {
        self.connection.exec_drop(sql, params).await
    }

    /// What MySQL does not prepare.
    async fn text(&mut self, sql: &'static str) -> Done {
        self.connection.query_drop(sql).await
    }

    async fn row<T: FromRow + Send + 'static>(
        &mut self,
        sql: &'static str,
        params: impl Into<Params> + Send,
    ) -> std::result::Result<T, Error> {
        let row = self.connection.exec_first(sql, params).await?;
        row.ok_or_else(|| Error::Other(format!("no row from: {sql}").into()))
    }

    fn district(&mut self) -> u32 {
        self.random.random_range(1..=DISTRICTS)
    }

    fn customer(&mut self) -> u32 {
        non_uniform(self.random, 1023, 1, CUSTOMERS)
    }

    /// Another warehouse, if there is one, in `percent` of all cases.
    fn supplying(&mut self, percent: u32) -> u32 {
        if self.warehouses == 1 || self.random.random_range(0..100) >= percent {
            return self.w;
        }
        let other = self.random.random_range(1..self.warehouses);
        if other < self.w { other } else { other + 1 }
    }

    async fn new_order(&mut self) -> Done {
        let (w, d, c) = (self.w, self.district(), self.customer());
        let mut lines: Vec<(u32, u32, u32)> = (0..self.random.random_range(5..=15))
            .map(|_| (non_uniform(self.random, 8191, 1, ITEMS), self.supplying(1), self.random.random_range(1..=10)))
            .collect();
        // In one order for everybody: fewer deadlocks.
        lines.sort_unstable();
        lines.dedup_by_key(|line| (line.0, line.1));
        // One in a hundred orders what is not there.
        let unused = self.random.random_range(0..100) == 0;
        let local = lines.iter().all(|line| line.1 == w);
        self.text("BEGIN").await?;
        let (discount, tax): (f64, f64) = self
            .row(
                "SELECT c_discount, w_tax FROM customer, warehouse WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
                (w, d, c),
            )
            .await?;
        let (o, district_tax): (u32, f64) =
            self.row("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", (w, d)).await?;
        self.run("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?", (w, d)).await?;
        self.run("INSERT INTO orders VALUES (?, ?, ?, ?, NOW(), NULL, ?, ?)", (w, d, o, c, lines.len(), local)).await?;
        self.run("INSERT INTO new_order VALUES (?, ?, ?)", (w, d, o)).await?;
        let mut total = 0.0;
        for (number, &(item, from, quantity)) in lines.iter().enumerate() {
            let price: f64 = self.row::<(f64,)>("SELECT i_price FROM item WHERE i_id = ?", (item,)).await?.0;
            let (stock, info): (i64, String) =
                self.row("SELECT s_quantity, s_dist_01 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE", (from, item)).await?;
            let left = if stock >= i64::from(quantity) + 10 { stock - i64::from(quantity) } else { stock - i64::from(quantity) + 91 };
            let update = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                          WHERE s_w_id = ? AND s_i_id = ?";
            self.run(update, (left, quantity, u32::from(from != w), from, item)).await?;
            let amount = f64::from(quantity) * price;
            total += amount;
            let insert = "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)";
            self.run(insert, (w, d, o, number + 1, item, from, quantity, format!("{amount:.2}"), info)).await?;
        }
        // What the terminal would show.
        std::hint::black_box(total * (1.0 - discount) * (1.0 + tax + district_tax));
        self.text(if unused { "ROLLBACK" } else { "COMMIT" }).await
    }

    /// By last name in 60 of 100 cases: the middle one by first name.
    async fn find_customer(&mut self, w: u32, d: u32) -> std::result::Result<u32, Error> {
        if self.random.random_range(0..100) >= 60 {
            return Ok(self.customer());
        }
        let name = last_name(non_uniform(self.random, 255, 0, 999));
        let all: Vec<u32> = self
            .connection
            .exec("SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first", (w, d, name))
            .await?;
        all.get(all.len() / 2).copied().ok_or_else(|| Error::Other("a last name without a customer".into()))
    }

    async fn payment(&mut self) -> Done {
        let (w, d) = (self.w, self.district());
        let (customer_w, customer_d) = match self.supplying(15) {
            same if same == w => (w, d),
            other => (other, self.district()),
        };
        let cents = self.random.random_range(100..=500_000);
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        self.text("BEGIN").await?;
        self.run("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", (&amount, w)).await?;
        let warehouse: String = self.row::<(String,)>("SELECT w_name FROM warehouse WHERE w_id = ?", (w,)).await?.0;
        self.run("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", (&amount, w, d)).await?;
        let district: String = self.row::<(String,)>("SELECT d_name FROM district WHERE d_w_id = ? AND d_id = ?", (w, d)).await?.0;
        let c = self.find_customer(customer_w, customer_d).await?;
        let of = (customer_w, customer_d, c);
        let credit: String =
            self.row::<(String,)>("SELECT c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE", of).await?.0;
        let update = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
                      WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        self.run(update, (&amount, &amount, customer_w, customer_d, c)).await?;
        if credit == "BC" {
            let update = "UPDATE customer SET c_data = LEFT(CONCAT(?, c_data), 500) WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
            self.run(update, (format!("{c} {customer_d} {customer_w} {d} {w} {amount} "), customer_w, customer_d, c)).await?;
        }
        let data = format!("{warehouse}    {district}");
        self.run("INSERT INTO history VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)", (c, customer_d, customer_w, d, w, &amount, data)).await?;
        self.text("COMMIT").await
    }

    async fn order_status(&mut self) -> Done {
        let (w, d) = (self.w, self.district());
        self.text("BEGIN").await?;
        let c = self.find_customer(w, d).await?;
        let select = "SELECT o_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
        let o: u32 = self.row::<(u32,)>(select, (w, d, c)).await?.0;
        let select =
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
        let _: Vec<(u32, u32, u32, f64)> = self.connection.exec(select, (w, d, o)).await?;
        self.text("COMMIT").await
    }

    async fn delivery(&mut self) -> Done {
        let (w, carrier) = (self.w, self.random.random_range(1..=10));
        for d in 1..=DISTRICTS {
            self.text("BEGIN").await?;
            let select = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE";
            let oldest: Option<u32> = self.connection.exec_first(select, (w, d)).await?;
            if let Some(o) = oldest {
                let of = (w, d, o);
                self.run("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", of).await?;
                let c: u32 = self.row::<(u32,)>("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", of).await?.0;
                self.run("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", (carrier, w, d, o)).await?;
                self.run("UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", of).await?;
                let select = "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
                let amount: String = self.row::<(String,)>(select, of).await?.0;
                let update = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                              WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
                self.run(update, (amount, w, d, c)).await?;
            }
            self.text("COMMIT").await?;
        }
        Ok(())
    }

    async fn stock_level(&mut self) -> Done {
        let (w, d, threshold) = (self.w, self.district(), self.random.random_range(10..=20));
        self.text("BEGIN").await?;
        let next: u32 = self.row::<(u32,)>("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", (w, d)).await?.0;
        let select = "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? \
                      AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?";
        let _: u64 = self.row::<(u64,)>(select, (w, d, next, next.saturating_sub(20), w, threshold)).await?.0;
        self.text("COMMIT").await
    }
}
