// Package era reads what clients of the Model Context Protocol send, in both of its
// eras: with sessions (2025-11-25 and older), where requests belong to what was said
// before, and without (2026-07-28), where each says everything and repeats in headers
// what is routed by. Which era holds is settled request by request, and says nothing
// about the server behind.
package era
