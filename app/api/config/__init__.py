"""`/v1/config`: what a client learns first."""
