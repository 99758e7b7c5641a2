"""The peers, one file each."""
