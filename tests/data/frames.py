"""Stand-ins for tables and columns of pandas and polars, which need not be installed: what is asked of them."""


class Column:
    """A column: one-dimensional, iterable, with `to_list`."""

    def __init__(self, values):
        self.values = values
        self.shape = (len(values),)

    def __iter__(self):
        return iter(range(1000))  # like a Series that is indexed otherwise: only to_list has the values in order

    def __len__(self):
        return len(self.values)

    def to_list(self):
        return list(self.values)


class Frame:
    """A table: iterates over the names of its columns, as pandas does."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, name):
        return Column(self._columns[name])
