"""A picture as SVG. Pure."""

from __future__ import annotations

from html import escape

from trainmaster.sdk.sweeps.pictures.shapes import Box, Curve, Dot, Label, Line, Picture, Shape

_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"


def svg(picture: Picture) -> str:
    """The whole picture in one element."""
    title = escape(_text(picture.title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width:g} {picture.height:g}" '
        f'width="{picture.width:g}" height="{picture.height:g}" style="max-width:100%;height:auto" '
        f'font-family="{_FONT}" role="img" aria-label="{title}"><title>{title}</title>'
        f'<rect width="100%" height="100%" rx="6" fill="#fff"/>{"".join(map(_element, picture.shapes))}</svg>\n'
    )


def _element(shape: Shape) -> str:
    if isinstance(shape, Label):
        return _label(shape)
    faint = "" if shape.opacity == 1 else f' opacity="{shape.opacity:g}"'
    if isinstance(shape, Box):
        return (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}" '
            f'fill="{shape.colour}"{faint}/>'
        )
    if isinstance(shape, Dot):
        ring = f' stroke="{shape.ring}" stroke-width="1.5"' if shape.ring else ""
        return (
            f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" fill="{shape.colour}"{ring}{faint}/>'
        )
    return (
        f'<path d="{_path(shape)}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}" '
        f'stroke-linejoin="round"{faint}/>'
    )


def _path(shape: Line | Curve) -> str:
    (x, y), *rest = shape.points
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        if isinstance(shape, Line):
            parts.append(f"L{nx:.1f} {ny:.1f}")
        else:
            parts.append(f"C{(x + nx) / 2:.1f} {y:.1f} {(x + nx) / 2:.1f} {ny:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return "".join(parts)


def _label(shape: Label) -> str:
    bold = ' font-weight="600"' if shape.bold else ""
    halo = ' stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' if shape.halo else ""
    # The baseline is a third of the size below the middle: not all viewers support dominant-baseline.
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y + shape.size * 0.34:.1f}" font-size="{shape.size:g}" '
        f'text-anchor="{shape.anchor}" fill="{shape.colour}"{bold}{halo}>{escape(_text(shape.text))}</text>'
    )


def _text(text: str) -> str:
    """Replaces characters that XML does not allow."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
