"""What the network is trained to do."""
