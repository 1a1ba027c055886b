// Package chat is the canonical conversation: what every dialect decodes to and encodes from
// when client and provider do not speak the same one. It holds requests, answers, the deltas of
// a stream, stop reasons, the report of what was not carried, the traits of a host, and the
// interfaces that a dialect implements.
//
// Rules that hold throughout:
//
//   - Absent is not zero: optional values are Opt, usage classes are absent
//     until reported, JSON null means absent.
//   - Schemas, tool arguments and unknown fields are kept as the bytes that
//     came, so that the prefix of a conversation is byte-identical from turn to
//     turn and the provider's prompt cache stays warm.
//   - Nothing vanishes silently: what an encoder cannot carry of a request is in
//     the Loss, and so is what a client's shape cannot hold of a response. Tests
//     walk the fields of both, so that every new one must be carried or reported.
//
// What must not be added: the shape of any one wire (that is a dialect), HTTP, credentials.
package chat
