"""What sits at one end of a call; none of them knows the other side."""
