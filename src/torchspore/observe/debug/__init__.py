"""What looks on while a program runs, for people who look for a fault; none of it is loaded before a switch asks for it."""
