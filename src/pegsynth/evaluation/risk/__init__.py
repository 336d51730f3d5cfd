"""What synthetic tables disclose: intruders, matching, membership, uniques."""
