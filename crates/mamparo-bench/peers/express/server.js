// The benchmark's handler behind express-idempotency with its store in memory; prints the port that it listens on.
'use strict';

const express = require('express');
const { idempotency, getSharedIdempotencyService } = require('express-idempotency');

let charges = 0;

const app = express();
app.disable('x-powered-by');
app.disable('etag');
// The key's misuse is found by the body, which is therefore read first, as its documentation has it.
app.use(express.json());
app.post('/charges', idempotency(), (request, response) => {
    if (getSharedIdempotencyService().isHit(request)) {
        return;
    }
    charges += 1;
    response.type('application/json').send(`{"id":"ch_${charges}","amount":100,"status":"succeeded"}`);
});

const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
// Whoever started it is gone.
process.stdin.on('end', () => process.exit()).resume();
