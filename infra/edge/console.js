// Names the file of a page of the console: every page has the same one, and assets have a hash
// of their content in their names.
function handler(event) {
  const request = event.request;
  if (request.uri === '/console') {
    return { statusCode: 308, statusDescription: 'Permanent Redirect', headers: { location: { value: '/console/' } } };
  }
  if (!request.uri.startsWith('/console/assets/')) {
    request.uri = '/console/index.html';
  }
  return request;
}
