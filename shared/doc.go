// Package shared is the folder of the rooms below functions, local and infra;
// rooms.txt is their order and the tests beside it keep it. It holds no code.
package shared
