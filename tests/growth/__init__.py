"""What clients send is read in time that grows with its length, and no faster."""
