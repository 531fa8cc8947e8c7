"""Networks of convolutions: LeNet-5, residual networks, an autoencoder."""

from __future__ import annotations

from typing import Any

from optlab.nn import (
    BatchNorm2D,
    Conv2D,
    Conv2DTranspose,
    Flatten,
    Layer,
    Linear,
    MaxPool2D,
    ReLU,
    Sequential,
    Sigmoid,
    functional,
)
from optlab.nn.initializer import KaimingNormal


class LeNet5(Layer):
    """Two convolutions with pooling, then three linear layers; for images of 28 x 28 pixels.

    Parameters
    ----------
    classes : int
    channels : int
        Of the images.

    Notes
    -----
    The sizes are those of LeCun et al. 1998, "Gradient-based learning applied to document
    recognition"; with ReLU and max pooling in place of tanh and averages, and a full second
    convolution. Input [batch, channels, 28, 28], output [batch, classes].

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.models.LeNet5()
    >>> model(ol.zeros([2, 1, 28, 28])).shape, sum(p.size for p in model.parameters())
    ((2, 10), 61706)
    """

    def __init__(self, classes: int = 10, channels: int = 1) -> None:
        super().__init__()
        self.features = Sequential(
            Conv2D(channels, 6, 5, padding=2), ReLU(), MaxPool2D(2),
            Conv2D(6, 16, 5), ReLU(), MaxPool2D(2),
        )  # fmt: skip
        self.classifier = Sequential(
            Flatten(), Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, classes)
        )

    def forward(self, x: Any) -> Any:
        """Return a score for each class, [batch, classes].

        Raises
        ------
        ValueError
            If the images are not of 28 x 28 pixels.
        """
        if x.ndim != 4 or tuple(x.shape[2:]) != (28, 28):
            raise ValueError(
                "LeNet5 reads images [batch, channels, 28, 28]; got the shape "
                f"{tuple(x.shape)}. ol.data.digits(28) has digits of that size."
            )
        return self.classifier(self.features(x))


class ResidualBlock(Layer):
    r"""Two convolutions with batch normalization, and a shortcut around them.

    .. math:: y = \mathrm{relu}(F(x) + S(x))

    Parameters
    ----------
    width_in, width : int
        Channels of the input and of the output.
    stride : int
        Of the first convolution. Where it or the width changes, the shortcut S is a convolution of
        1 x 1 with batch normalization; else the identity.

    Notes
    -----
    Source: He, Zhang, Ren and Sun, Deep residual learning for image recognition, 2016 (section 4.2,
    with shortcuts of option B).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.models.ResidualBlock(16, 32, stride=2)(ol.zeros([1, 16, 8, 8])).shape
    (1, 32, 4, 4)
    """

    def __init__(self, width_in: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.residual = Sequential(
            _convolution(width_in, width, 3, stride), BatchNorm2D(width), ReLU(),
            _convolution(width, width, 3), BatchNorm2D(width),
        )  # fmt: skip
        self.shortcut = None
        if stride != 1 or width_in != width:
            self.shortcut = Sequential(_convolution(width_in, width, 1, stride), BatchNorm2D(width))

    def forward(self, x: Any) -> Any:
        """Return the output, [batch, width, height / stride, width / stride]."""
        around = x if self.shortcut is None else self.shortcut(x)
        return functional.relu(self.residual(x) + around)


class ResNet(Layer):
    """A residual network of 6 n + 2 layers for small images.

    Parameters
    ----------
    depth : int
        8, 14, 20, 32, ...: three stages of n blocks of two convolutions each, the first convolution
        and the linear layer.
    classes : int
    channels : int
        Of the images.
    width : int
        Channels of the first stage; the second has twice, the third four times as many.

    Raises
    ------
    ValueError
        If the depth is not 6 n + 2.

    Notes
    -----
    Source: He, Zhang, Ren and Sun, Deep residual learning for image recognition, 2016, section 4.2.
    Input [batch, channels, height, width], output [batch, classes].

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.models.ResNet(8, width=8)
    >>> model(ol.zeros([2, 1, 16, 16])).shape
    (2, 10)
    """

    def __init__(
        self, depth: int = 20, classes: int = 10, channels: int = 1, width: int = 16
    ) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 2, 6)
        if blocks < 1 or rest:
            raise ValueError(f"ResNet has 6 n + 2 layers: 8, 14, 20, 32, ...; got depth={depth!r}.")
        self.stem = Sequential(_convolution(channels, width, 3), BatchNorm2D(width), ReLU())
        stages = []
        now = width
        for stage in range(3):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                stages.append(ResidualBlock(now, width << stage, stride))
                now = width << stage
        self.blocks = Sequential(*stages)
        self.head = Linear(now, classes)

    def forward(self, x: Any) -> Any:
        """Return a score for each class, [batch, classes]."""
        return self.head(self.blocks(self.stem(x)).mean(axis=(2, 3)))


def _convolution(width_in: int, width: int, size: int, stride: int = 1) -> Conv2D:
    return Conv2D(
        width_in, width, size, stride, size // 2, weight_attr=KaimingNormal(), bias_attr=False
    )


class ConvAutoencoder(Layer):
    """Convolutions that compress images into a code, and transposed ones that bring them back.

    Parameters
    ----------
    code : int
        The length of the code.
    channels : int
        Of the images.
    size : int
        Their height and width, a multiple of 4.
    width : int
        Channels of the first convolution; the second has twice as many.

    Notes
    -----
    Input and output [batch, channels, size, size], the output in (0, 1).

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.models.ConvAutoencoder(code=4, size=8)
    >>> images = ol.zeros([3, 1, 8, 8])
    >>> model.encode(images).shape, model(images).shape
    ((3, 4), (3, 1, 8, 8))
    """

    def __init__(self, code: int = 8, channels: int = 1, size: int = 8, width: int = 16) -> None:
        super().__init__()
        if size < 4 or size % 4:
            raise ValueError(f"ConvAutoencoder halves the size twice: a multiple of 4; got {size}.")
        self.inner = (2 * width, size // 4, size // 4)
        length = 2 * width * (size // 4) ** 2
        self.encoder = Sequential(
            Conv2D(channels, width, 3, 2, 1), ReLU(), Conv2D(width, 2 * width, 3, 2, 1), ReLU(),
            Flatten(), Linear(length, code),
        )  # fmt: skip
        self.widen = Sequential(Linear(code, length), ReLU())
        self.decoder = Sequential(
            Conv2DTranspose(2 * width, width, 4, 2, 1), ReLU(),
            Conv2DTranspose(width, channels, 4, 2, 1), Sigmoid(),
        )  # fmt: skip

    def encode(self, x: Any) -> Any:
        """Return the codes of images, [batch, code]."""
        return self.encoder(x)

    def decode(self, code: Any) -> Any:
        """Return the images of codes, [batch, channels, size, size]."""
        x = self.widen(code)
        return self.decoder(x.reshape((x.shape[0], *self.inner)))

    def forward(self, x: Any) -> Any:
        """Return the images as they come back, [batch, channels, size, size]."""
        return self.decode(self.encode(x))
