#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
mkdir -p site/docs/guide site/docs/api site/assets/img "site/old pages" site/latest
for name in docs/guide/install.md docs/guide/upgrade.md docs/api/index.html assets/img/logo.svg \
    assets/style.css "old pages/about us.html" docs/index.html; do
    printf 'content of %s\n' "$name" > "site/$name"
done
cd site
ln -s ../guide/install.md docs/api/install.md             # works
ln -s manual/upgrade.md docs/upgrade.md                   # moved to docs/guide
ln -s ../images/logo.svg latest/logo.svg                  # moved to assets/img
ln -s "$PWD/assets/style.css" docs/style.css              # works, absolute
ln -s "/srv/www/about us.html" latest/about.html          # moved, absolute
ln -s ../index.html latest/start.html                     # two candidates
ln -s removed.md docs/guide/removed.md                    # no candidate
ln -s loop-b docs/loop-a
ln -s loop-a docs/loop-b
ln -s docs/guide guide                                    # a folder, works
ln -s ../docs/manual latest/manual                        # a folder that is gone
ln -s logo.png "assets/img/old logo.png"                  # no candidate
ln -s ../latest/logo.svg assets/mark.svg                  # works again once its target is repaired
