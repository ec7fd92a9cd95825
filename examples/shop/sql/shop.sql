-- A row for each pair, for a hold names the thing that can be sold once.
CREATE TABLE IF NOT EXISTS pairs (
    sku     text NOT NULL,
    number  int  NOT NULL,
    sold_to text UNIQUE,        -- The payment key of the order that has it. NULL: for sale.
    PRIMARY KEY (sku, number)
);

-- What the buyer wanted, and how far it has come. Written before the money moves, so that any instance can finish it.
CREATE TABLE IF NOT EXISTS orders (
    payment_key text        PRIMARY KEY,   -- Drawn by the buyer's browser: names this one purchase, however often it asks.
    buyer       text        NOT NULL,
    sku         text        NOT NULL,
    pair        int,                       -- The pair that is held, later the one that was sold.
    fence       bigint,                    -- The hold's. NULL: there was none.
    state       text        NOT NULL CHECK (state IN
                            ('paying', 'sold', 'refunding', 'refunded', 'declining', 'declined')),
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS orders_unfinished ON orders (changed_at)
    WHERE state IN ('paying', 'refunding', 'declining');
