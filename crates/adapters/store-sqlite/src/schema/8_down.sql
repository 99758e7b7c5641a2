-- The table stays: an older Wharf leaves it alone, and nothing else knows what removed runs cost.
SELECT 1;
