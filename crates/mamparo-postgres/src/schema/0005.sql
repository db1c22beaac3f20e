-- What ended long ago is found by its end, to be forgotten.

CREATE INDEX transactions_ended ON transactions (updated_at) WHERE ended IS NOT NULL;
