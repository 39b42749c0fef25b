"""Answers each line of standard input (secret, timestamp, body, signature in hex; now) with true or false."""

import sys

from verify import verify

for line in sys.stdin:
    secret, timestamp, body, signature, now = line.rstrip("\n").split("\t")
    secret, timestamp, signature = (bytes.fromhex(each).decode() for each in (secret, timestamp, signature))
    print(str(verify(secret, timestamp, bytes.fromhex(body), signature, int(now))).lower())
