#!/bin/bash
# backup.sh SOURCE TARGET [KEEP]

SOURCE=$1
TARGET=$2
KEEP=${3:-3}
NAME=$(basename $SOURCE)
STAMP=${BACKUP_STAMP:-$(date +%Y%m%dT%H%M%SZ)}

cd $SOURCE
tar czf $TARGET/$NAME-$STAMP.tar.gz *

ls -t $TARGET/$NAME-* | tail -n +$KEEP | xargs rm
echo "$TARGET/$NAME-$STAMP.tar.gz"
