-- The pretend payment provider's own book. The shop never looks into it.
CREATE TABLE IF NOT EXISTS payments (
    payment_key text PRIMARY KEY,
    state       text NOT NULL CHECK (state IN ('charged', 'refunded', 'void')),   -- Void: never charged, and never will be.
    asked       int  NOT NULL DEFAULT 1,   -- How often the shop has asked for this charge. It moved money once.
    answers     bool NOT NULL              -- False: charged, and nobody hears of it until somebody sets it.
);
