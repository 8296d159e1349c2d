#!/bin/sh
. "$(dirname -- "$0")/headrace-run.sh"
start_server zookeeper-start zookeeper zookeeper.out "[-daemon] zookeeper.properties" "$@"
