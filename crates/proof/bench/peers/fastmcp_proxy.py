"""FastMCP as a proxy, as its guide sets one up: `fastmcp_proxy.py URL PORT`."""

import sys

from fastmcp.server import create_proxy

create_proxy(sys.argv[1]).run(
    transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR"
)
