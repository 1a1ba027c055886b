package pricing

import "math/bits"

// DefaultImagePixels is the assumed size of an image if neither the request nor the response
// states it: 1024x1024, the documented default of the hosts that charge by the megapixel.
const DefaultImagePixels = 1024 * 1024

const pixelsPerMegapixel = 1_000_000

// ImageSizes describes the known sizes of the images that a request generated.
type ImageSizes struct {
	Pixels int64 // sum over the images with a size in the response
	Read   int64 // number of those images
	Each   int64 // pixels of every other image, as requested; zero if the request states no size
	Steps  int64 // inference steps, as requested; zero if the request states none
}

// ByMegapixel reports whether the price charges for megapixels.
func (p Price) ByMegapixel() bool { return p.rate[Megapixels] > 0 }

// CountPixels returns u with the pixels of its images if the price charges by the megapixel and
// the host reported no size. The size of an image is that in the response, else the requested
// one, else DefaultImagePixels; the last makes the usage an estimate. More inference steps than
// the price assumes count in proportion, fewer count as those.
func (p Price) CountPixels(u Usage, s ImageSizes) Usage {
	images := u.N(Images)
	if !p.ByMegapixel() || images <= 0 || u.has&(1<<Megapixels|1<<Pixels) != 0 {
		return u
	}
	pixels := s.Pixels
	if rest := images - s.Read; rest > 0 {
		each := s.Each
		if each <= 0 {
			each, u.Estimated = DefaultImagePixels, true
		}
		pixels += min(each, MaxUnits/images) * rest
	}
	u.Set(Pixels, p.scaleBySteps(pixels, s.Steps))
	return u
}

// BoundOfPixels returns a bound of images with the megapixels scaled by the inference steps.
func (p Price) BoundOfPixels(most Usage, steps int64) Usage {
	if n := most.N(Megapixels); p.ByMegapixel() && n > 0 {
		most.Set(Megapixels, p.scaleBySteps(n, steps))
	}
	return most
}

// scaleBySteps scales a count by the inference steps beyond those that the price assumes, rounded
// up. It saturates at MaxUnits.
func (p Price) scaleBySteps(n, steps int64) int64 {
	usual := p.defaults.Steps
	if usual <= 0 || steps <= usual {
		return min(n, MaxUnits)
	}
	hi, lo := bits.Mul64(uint64(n), uint64(steps))
	lo, carry := bits.Add64(lo, uint64(usual-1), 0)
	if hi += carry; hi >= uint64(usual) {
		return MaxUnits
	}
	scaled, _ := bits.Div64(hi, lo, uint64(usual))
	return int64(min(scaled, MaxUnits))
}

// perMegapixel divides the 128-bit product of pixels and the price of a megapixel, rounded up to a
// femto-dollar.
func perMegapixel(hi, lo uint64) (uint64, uint64) {
	lo, carry := bits.Add64(lo, pixelsPerMegapixel-1, 0)
	hi += carry
	top, rest := hi/pixelsPerMegapixel, hi%pixelsPerMegapixel
	low, _ := bits.Div64(rest, lo, pixelsPerMegapixel)
	return top, low
}
