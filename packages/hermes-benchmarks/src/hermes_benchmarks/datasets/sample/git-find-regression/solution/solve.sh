#!/bin/bash
set -eu
cd shop
git bisect start main v1.0 > /dev/null
git bisect run sh -c 'out=$(python3 price.py 3 9.99 2>/dev/null) || exit 125; [ "$out" = 29.97 ]' > /dev/null
bad=$(git rev-parse refs/bisect/bad)
git bisect reset > /dev/null 2>&1
echo "$bad" > ../first-bad.txt
sed -i 's/^CENT = .*/CENT = Decimal("0.01")/; s/pieces, rounded\."/pieces, rounded to cents."/' price.py
git commit -q -a -m "Round to cents again"
