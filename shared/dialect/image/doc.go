// Package image translates /images/generations for hosts with separate formats: Workers
// AI, SiliconFlow, Hyperbolic, Stability AI, Segmind, fal.ai and Fireworks AI. Most of
// them respond with the bytes of images, as base64 or bare. Clients then get b64_json,
// regardless of response_format, as the loss report states.
package image
