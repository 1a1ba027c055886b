// Package converse is the wire format of Amazon Bedrock's Converse and ConverseStream
// operations.
//
// Requests put the parts that are constant from turn to turn first and the messages last,
// so that a conversation's bytes only grow at their end. User and assistant alternate:
// neighbors of one role become one message, with tool results before the user's text.
//
// System prompts at the beginning of the conversation go into the field system. For later
// ones, messages have had the role system since May 2026. The API accepts this role for
// every model, but most models reject it; chat.Traits.SystemTurns lists which accept it.
// Those require one such message after a turn of the user, either last or before a turn
// of the assistant, so a prompt elsewhere moves after the user's turn. For other models,
// later prompts move in front of the conversation. Every move is in the loss report.
//
// Parameters specific to one vendor's models go into additionalModelRequestFields, by
// chat.Traits.Family.
//
// Streams are AWS event streams. The stop reason arrives before the usage.
package converse
