// Package chat defines the canonical conversation, which every dialect decodes to and encodes
// from when client and provider use different formats. It contains requests, responses, stream
// deltas, stop reasons, the report of unsupported fields, the traits of a host, and the
// interfaces of dialects.
//
// Rules:
//
//   - Absent is not zero: optional values are Opt, usage classes are absent until reported,
//     JSON null means absent.
//   - Schemas, tool arguments and unknown fields are stored verbatim, so that the prefix of a
//     conversation is byte-identical in every turn and the provider's prompt cache stays valid.
//   - Nothing is dropped silently: the Loss reports fields of a request that an encoder does
//     not support, and parts of a response that the client's format does not support. Tests
//     enumerate the fields of both, so that every new one must be encoded or reported.
//
// Do not add wire formats (see dialects), HTTP or credentials here.
package chat
