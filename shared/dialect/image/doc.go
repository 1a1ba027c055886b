// Package image carries /images/generations to hosts that have a shape separate for it:
// Workers AI, SiliconFlow, Hyperbolic, Stability AI, Segmind, fal.ai and Fireworks AI.
// Most of them answer with the bytes of images, as base64 or bare. Clients then get
// b64_json, whatever response_format says, and the loss report tells them.
package image
