"""What memory is: notes and what is made of them, as pure functions of values."""
