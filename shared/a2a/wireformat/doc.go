// Package wireformat converts between the forms of the agent protocol: requests and answers of
// 1.0, of 0.3 in JSON-RPC, and of 0.3 in HTTP+JSON, which differs from the former. Every
// conversion goes through the form of 1.0.
//
//	0.3 JSON-RPC   {"kind":"message","role":"user","parts":[{"kind":"text","text":""}]}
//	0.3 HTTP+JSON  {"role":"ROLE_USER","content":[{"text":""}]}
//	1.0            {"role":"ROLE_USER","parts":[{"text":""}]}
//
// Members that are not known are kept as they are.
package wireformat
