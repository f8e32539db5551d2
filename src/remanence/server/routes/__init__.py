"""What the server answers, one module for each subject."""
