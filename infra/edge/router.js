import cf from 'cloudfront';

// Chooses the origin of a request. ROUTES is made from the placement table.
const ROUTES = {/*ROUTES*/};

// Bounds of what API Gateway and Lambda take, in bytes.
const MAX_BODY = 3500000;
const MAX_CONFIG = 4096;
const MAX_HEADERS = 8192;

function handler(event) {
  const request = event.request;
  const parts = request.uri.split('/');
  if (parts[1] === 'v2') {
    // What is not the administration's is Cohere's.
    const own = parts.length < 3 || parts[2] === '' || ROUTES.administration.indexOf(parts[2]) >= 0;
    request.uri = '/v1' + (own ? request.uri.slice(3) : request.uri);
  }
  if (request.uri.startsWith('/v1/v1/')) {
    request.uri = request.uri.slice(3);
  } else if (request.uri.startsWith('/openai/v1/')) {
    request.uri = request.uri.slice('/openai'.length);
  } else if (ROUTES.versionless.indexOf(request.uri.split('/')[1]) >= 0) {
    request.uri = '/v1' + request.uri;
  }
  if (request.uri.startsWith('/v1/openai/')) {
    azure(request);
  }
  if (request.uri.startsWith('/.well-known/')) {
    request.uri = '/v1' + request.uri;
  }
  const refused = unsigned(request);
  if (refused) return refused;
  if (ROUTES.container && place(request) === 'container') {
    cf.selectRequestOriginById('container');
  }
  return request;
}

// azure gives what Azure's clients ask for its own path, and names its deployment in the
// query. Without one only those have a version there.
function azure(request) {
  const below = request.uri.slice('/v1/openai'.length);
  const query = request.querystring;
  if (below === '/v1/realtime' || below.startsWith('/v1/realtime/')) {
    request.uri = below;
    return;
  }
  if (!below.startsWith('/deployments/')) {
    if (query['api-version'] && ROUTES.azure.indexOf(below) >= 0) {
      delete query['api-version'];
      request.uri = '/v1' + below;
    }
    return;
  }
  const rest = below.slice('/deployments/'.length);
  const operation = ROUTES.azure.find(function (op) { return rest.endsWith(op); });
  const deployment = operation ? rest.slice(0, -operation.length) : '';
  if (deployment !== '' && deployment[0] !== '/') {
    delete query['api-version'];
    query.deployment = { value: deployment };
    request.uri = '/v1' + operation;
  }
}

// unsigned answers a client of MCP that has no credential: it is told where to sign in
// by a header that the API would rename. Web pages need the headers of a function, and
// the container answers for itself.
function unsigned(request) {
  const headers = request.headers;
  if (ROUTES.container || !/^\/v1\/mcp\/[^\/]+(\/[^\/]+)?\/mcp$/.test(request.uri) || request.method === 'OPTIONS' || headers.origin) return null;
  for (const name in headers) {
    if (name === 'authorization' || name.endsWith('api-key')) return null;
  }
  const address = ROUTES.address || 'https://' + value(headers, 'host') + '/v1';
  const root = address.split('/').slice(0, 3).join('/');
  const described = root + '/.well-known/oauth-protected-resource' + address.slice(root.length) + request.uri.slice(3);
  return {
    statusCode: 401, statusDescription: 'Unauthorized',
    headers: {
      'www-authenticate': { value: 'Bearer resource_metadata="' + described + '", scope="' + ROUTES.scope + '"' },
      'content-type': { value: 'application/json' },
    },
    body: '{"jsonrpc":"2.0","error":{"code":401,"data":{"error":"invalid_api_key","field":"x-gateway-api-key"},"message":"No API key was sent. Send one in x-gateway-api-key, or as Authorization: Bearer"}}',
  };
}

// place gives 'api' or 'container'.
function place(request) {
  const path = request.uri.startsWith('/v1/') ? request.uri.slice(3) : request.uri;
  const first = path.split('/')[1];
  const pattern = ROUTES.patterns.find(function (p) { return p[0] === request.method && new RegExp('^' + p[1] + '$').test(path); });
  // What a server of MCP says of signing in comes whole from the container.
  if (pattern && (pattern[2] === 'container' || first === 'mcp')) return 'container';
  if (pattern || ROUTES.stream.indexOf(request.method + ' ' + path) >= 0) {
    return ROUTES.chat === 'container' || large(request) ? 'container' : 'api';
  }
  return ROUTES.administration.indexOf(first) >= 0 ? 'api' : 'container';
}

// large tells whether a request does not fit an event of a function.
function large(request) {
  const headers = request.headers;
  if (value(headers, 'content-type').startsWith('multipart/')) return true;
  if (ROUTES.config.some(function (name) { return value(headers, name).length > MAX_CONFIG; })) return true;
  let sum = request.uri.length;
  for (const name in headers) sum += name.length + headers[name].value.length + 4;
  if (sum > MAX_HEADERS) return true;
  const length = value(headers, 'content-length');
  if (length === '') return request.method !== 'GET' && request.method !== 'HEAD';
  return Number(length) > MAX_BODY;
}

function value(headers, name) {
  return headers[name] ? headers[name].value : '';
}
