"""What a policy returns in held-out tasks after each adaptation step, and recordings of it."""
