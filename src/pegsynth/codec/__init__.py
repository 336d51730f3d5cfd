"""Values to codes and back: listed, numeric, dates, measured edges and categories, panels."""
