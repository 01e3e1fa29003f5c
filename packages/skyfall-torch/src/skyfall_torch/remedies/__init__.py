"""Small remedies for lost plasticity that continual learners are compared with; one file each."""
