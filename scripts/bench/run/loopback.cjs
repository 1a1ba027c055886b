// Makes a server that names only a port listen on the loopback interface, not on all of them.
const net = require('net')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, host, ...rest) {
  return typeof port === 'number' ? listen.call(this, port, '127.0.0.1', ...rest.filter(f => typeof f === 'function'), ...(typeof host === 'function' ? [host] : [])) : listen.call(this, port, host, ...rest)
}
