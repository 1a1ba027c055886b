package pricing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func images(n int64) (u Usage) {
	u.Set(Images, n)
	return u
}

// TestImagesAreChargedByTheirPixels charges images of hosts that price megapixels and report no
// size by the size that is known best.
func TestImagesAreChargedByTheirPixels(t *testing.T) {
	t.Parallel()
	schnell, ok := Default().Price("together-ai", "black-forest-labs/FLUX.1-schnell", Options{})
	if !ok || !schnell.ByMegapixel() || schnell.Defaults().Steps != 4 {
		t.Fatalf("%+v", schnell)
	}
	per := schnell.rate[Megapixels] // femto-dollars
	reported := images(1)
	reported.Set(Megapixels, 3)
	for name, c := range map[string]struct {
		u         Usage
		sizes     ImageSizes
		pixels    int64
		estimated bool
	}{
		"requested":                     {images(2), ImageSizes{Each: 512 * 768}, 2 * 512 * 768, false},
		"read from the response":        {images(1), ImageSizes{Pixels: 640 * 480, Read: 1, Each: 1024 * 1024}, 640 * 480, false},
		"read in part":                  {images(3), ImageSizes{Pixels: 2 * 640 * 480, Read: 2, Each: 512 * 512}, 2*640*480 + 512*512, false},
		"unknown":                       {images(2), ImageSizes{}, 2 * 1024 * 1024, true},
		"more steps than the price has": {images(1), ImageSizes{Each: 1000 * 1000, Steps: 9}, 2_250_000, false},
		"fewer steps":                   {images(1), ImageSizes{Each: 1000 * 1000, Steps: 1}, 1_000_000, false},
		"absurd steps":                  {images(1), ImageSizes{Each: 1000 * 1000, Steps: math.MaxInt64}, MaxUnits, false},
		"an absurd size":                {images(10), ImageSizes{Each: math.MaxInt64}, MaxUnits, false},
		"reported by the host":          {reported, ImageSizes{Each: 1024 * 1024}, 0, false},
		"no image":                      {Usage{}, ImageSizes{Each: 1024 * 1024}, 0, false},
	} {
		got := schnell.CountPixels(c.u, c.sizes)
		if got.N(Pixels) != c.pixels || got.Estimated != c.estimated {
			t.Errorf("%s: %d pixels, estimated %t; want %d, %t", name, got.N(Pixels), got.Estimated, c.pixels, c.estimated)
		}
		if got.N(Images) > 0 && !schnell.Covers(got) {
			t.Errorf("%s: the price does not cover %+v", name, got)
		}
	}
	if got, want := schnell.Cost(schnell.CountPixels(images(1), ImageSizes{Each: 2048 * 2048})), NanoDollars((4_194_304*(per/1_000_000)+500_000)/1_000_000); got != want || got == 0 {
		t.Errorf("%d, want %d", got, want)
	}
	if schnell.Covers(images(1)) {
		t.Error("images without pixels are covered")
	}
	byImage, _ := Default().Price("openai", "dall-e-3", Options{})
	if got := byImage.CountPixels(images(1), ImageSizes{Each: 1}); got != images(1) {
		t.Errorf("%+v", got)
	}
}

// TestPixelsAreNeverAboveTheirBound compares what images are charged with the reservation for them.
func TestPixelsAreNeverAboveTheirBound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		p, err := parseEntry("p/m", fmt.Sprintf("megapixels=%d default_steps=%d", 1+r.Int64N(1000), r.Int64N(50)))
		if err != nil {
			t.Fatal(err)
		}
		var price Price
		p.base.resolve(&price, &Options{})
		n, each, steps := 1+r.Int64N(10), 1+r.Int64N(1<<26), r.Int64N(200)
		var most Usage
		most.Set(Megapixels, n*((each+999_999)/1_000_000))
		cost, bound := price.Cost(price.CountPixels(images(n), ImageSizes{Each: each, Steps: steps})), price.Cost(price.BoundOfPixels(most, steps))
		if cost > bound {
			t.Fatalf("%d images of %d pixels in %d steps cost %d, bound %d", n, each, steps, cost, bound)
		}
	}
}
