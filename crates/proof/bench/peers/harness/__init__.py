"""What measuring peers in turns needs, whoever the peers are."""
