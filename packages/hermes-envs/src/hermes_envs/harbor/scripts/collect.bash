# What the tests left: hashes of the test files in the first folder, and the files in the second.
#
# First `SHA256  ./PATH` for every test file, each ended by NUL; links and devices as `link`, so that they differ. Then an
# empty record, and `TYPE|SIZE|NAME` records, verdict and report first; a link is reported as a link.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
tests=$1 logs=$2
if cd -- "$tests"; then
    find . -type f -print0 | xargs -0 -r sha256sum -z --
    find . ! -type f ! -type d -printf 'link  %p\0'
fi
printf '\0'
cd -- "$logs" || exit 1
stat --printf='%F|%s|%n\0' -- reward.json reward.txt ctrf.json 2>/dev/null
find . -maxdepth 1 -type f -name '[A-Za-z0-9]*' ! -name reward.json ! -name reward.txt ! -name ctrf.json -printf 'regular file|%s|%f\0' \
    | sort -z | head -z -n 30
