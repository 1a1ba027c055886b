// Package embedding has the client format of embeddings, that of OpenAI with images
// beside texts, and the translators to providers with similar formats: Voyage, Jina,
// Nomic.
package embedding
