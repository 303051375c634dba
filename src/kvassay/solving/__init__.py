"""From scores and a budget to maps: no model is needed here."""
