// Package window judges a stream while it is on its way, between the reader of the provider's
// events and the writer of the client's. A window passes a text on once it has been judged
// together with what follows it. A hold passes nothing on before the whole response has been
// judged.
package window
