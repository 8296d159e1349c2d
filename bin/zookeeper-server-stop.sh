#!/bin/sh
. "$(dirname -- "$0")/headrace-run.sh"
stop_server zookeeper zookeeper
