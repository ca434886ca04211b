#!/usr/bin/env python3
"""The Chromium of this machine, deaf to its network interfaces.

Chromium gives up what it is connecting to (net::ERR_NETWORK_CHANGED) whenever an interface comes or goes, as with every container
that another test starts. This starts it without the sockets by which the kernel tells of that.
"""

import ctypes
import os
import platform
import shutil
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine(), -1)
AF_NETLINK, NETLINK_ROUTE = 16, 0
NO_NEW_PRIVS, SECCOMP = 38, 22
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x5_0000 | 97, 0x7FFF_0000
FILTER = (
    *((LOAD, 0, 0, 0), (EQUAL, 0, 5, SOCKET & 0xFFFF_FFFF)),
    *((LOAD, 0, 0, 16), (EQUAL, 0, 3, AF_NETLINK)),
    *((LOAD, 0, 0, 32), (EQUAL, 0, 1, NETLINK_ROUTE)),
    *((RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)),
)

if __name__ == "__main__":
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in FILTER))
    program = struct.pack("HxxxxxxQ", len(FILTER), ctypes.addressof(code))
    prctl = ctypes.CDLL(None).prctl
    prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(SECCOMP, 2, ctypes.c_char_p(program), 0, 0)
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)))
    os.execv(path, [path, *sys.argv[1:]])
