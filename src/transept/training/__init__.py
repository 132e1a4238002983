"""Section 5: the loss, the optimizer's schedule, the loop."""
