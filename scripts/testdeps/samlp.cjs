// An identity provider of SAML 2.0 for tests. It reads {issuer, key, cert} as one line
// of JSON, listens on a port of 127.0.0.1 and says which. POST /next says who signs in
// next and what is different about it; GET /sso takes requests, and begins by itself
// where there is none.
'use strict';

const http = require('node:http');
const readline = require('node:readline');
const samlp = require('samlp');

process.removeAllListeners('warning');
process.on('warning', () => {});
process.stdin.on('end', () => process.exit(0)); // with the test that started it

let next = { user: {}, options: {} };

// express gives the library what it uses of express.
function express(req, res) {
  const url = new URL(req.url, 'http://' + req.headers.host);
  Object.assign(req, { protocol: 'http', originalUrl: req.url, query: Object.fromEntries(url.searchParams) });
  res.set = (name, value) => res.setHeader(name, value);
  res.send = (a, b) => {
    if (typeof a === 'number') {
      res.statusCode = a;
      a = String(b ?? a);
    }
    res.end(a);
  };
  return url.pathname;
}

function profile(user) {
  return {
    id: user.email, emails: [{ value: user.email }], displayName: user.given + ' ' + user.family, name: { givenName: user.given, familyName: user.family },
  };
}

function serve(config, req, res) {
  const path = express(req, res);
  if (path === '/metadata') {
    return samlp.metadata({ issuer: config.issuer, cert: next.options.cert ?? config.cert, redirectEndpointPath: '/sso', postEndpointPath: '/sso' })(req, res);
  }
  if (path === '/next') {
    let body = '';
    req.on('data', (part) => { body += part; });
    req.on('end', () => {
      next = JSON.parse(body);
      res.end();
    });
    return undefined;
  }
  const { acs, ...options } = next.options;
  return samlp.auth({
    issuer: config.issuer, cert: config.cert, key: config.key, lifetimeInSeconds: 300, recipient: acs, destination: acs,
    getUserFromRequest: () => profile(next.user),
    getPostURL: (_audience, dom, _req, done) => done(null, dom ? dom.documentElement.getAttribute('AssertionConsumerServiceURL') : acs),
    ...options,
  })(req, res, (err) => res.send(400, String(err)));
}

const lines = readline.createInterface({ input: process.stdin });
lines.once('line', (line) => {
  const config = JSON.parse(line);
  const server = http.createServer((req, res) => serve(config, req, res));
  server.listen(0, '127.0.0.1', () => console.log('ready ' + server.address().port));
});
