"""Full-duplex voice calls on one timeline: hold them, measure them, grade them."""
