// Package wireformat converts values of the Agent2Agent protocol between the formats of 1.0, of
// 0.3 in JSON-RPC and of 0.3 in HTTP+JSON. Every conversion goes through the format of 1.0.
// Unknown fields are preserved.
//
//	0.3 JSON-RPC   {"kind":"message","role":"user","parts":[{"kind":"text","text":""}]}
//	0.3 HTTP+JSON  {"role":"ROLE_USER","content":[{"text":""}]}
//	1.0            {"role":"ROLE_USER","parts":[{"text":""}]}
package wireformat
