"""What decodes: ids in, hypotheses out."""
