#!/bin/sh
# not-built.sh PACKAGE: stands in for a test program that could not be built.
echo "not ok 1 - built: $1 was not there when this folder was set up; \`make deps-test\`, then \`make\`"
echo "1..1"
exit 1
